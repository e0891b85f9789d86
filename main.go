package main
import ("fmt";"os";"net/http")
func main(){
 _,err:=http.Get(os.Args[1])
 fmt.Println(err)
}
-sdk-go-v2/config";"github.com/aws/aws-sdk-go-v2/service/s3")
func main(){
 cfg,err:=config.LoadDefaultConfig(context.Background(),config.WithRegion("us-east-1"))
 if err!=nil{panic(err)}
 c:=s3.NewFromConfig(cfg,func(o*s3.Options){o.BaseEndpoint=aws.String(os.Args[1]);o.UsePathStyle=true;o.Retryer=aws.NopRetryer{}})
 _,err=c.PutObject(context.Background(),&s3.PutObjectInput{Bucket:aws.String("b"),Key:aws.String("k"),Body:strings.NewReader("x"),IfMatch:aws.String("x")})
 fmt.Println(err)
 _,err=c.GetObject(context.Background(),&s3.GetObjectInput{Bucket:aws.String("b"),Key:aws.String("k")})
 fmt.Println(err)
 _,err=c.ListObjectsV2(context.Background(),&s3.ListObjectsV2Input{Bucket:aws.String("b")})
 fmt.Println(err)
}
